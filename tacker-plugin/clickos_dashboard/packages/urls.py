# SPDX-License-Identifier: Apache-2.0
"""Addresses of packages."""

from django.urls import path

from clickos_dashboard.packages import views

urlpatterns = [
    path('', views.IndexView.as_view(), name='index'),
    path('upload', views.UploadView.as_view(), name='upload'),
    path('catalog', views.CatalogView.as_view(), name='catalog'),
    path('<str:package_id>/', views.DetailView.as_view(), name='detail')]
