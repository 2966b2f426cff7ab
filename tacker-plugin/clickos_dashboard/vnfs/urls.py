# SPDX-License-Identifier: Apache-2.0
"""Addresses of VNFs."""

from django.urls import path

from clickos_dashboard.vnfs import views

urlpatterns = [
    path('', views.IndexView.as_view(), name='index'),
    path('launch', views.ChooseView.as_view(), name='choose'),
    path('launch/<str:package_id>', views.LaunchView.as_view(),
         name='launch'),
    path('<str:vnf_id>/', views.DetailView.as_view(), name='detail'),
    path('<str:vnf_id>/update', views.UpdateView.as_view(), name='update'),
    path('<str:vnf_id>/scale', views.ScaleView.as_view(), name='scale'),
    path('<str:vnf_id>/guests/<str:server_id>/handlers/<path:name>',
         views.HandlerView.as_view(), name='handler')]
